import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

Item {
    ListView {
        id: list
        objectName: "requestList"
        anchors { fill: parent; margins: 16 }
        spacing: 12
        clip: true
        model: app.requestModel
        boundsBehavior: Flickable.StopAtBounds
        ScrollBar.vertical: ScrollBar { }
        delegate: RequestCard { width: ListView.view.width - 12 }
    }
    ColumnLayout {
        visible: list.count === 0
        anchors.centerIn: parent
        width: Math.min(parent.width - 64, 420)
        spacing: 8
        Text { text: "Nothing waits for you"; color: look.c.text; font.pixelSize: 20; font.bold: true; Layout.alignment: Qt.AlignHCenter }
        Text {
            text: "When an agent asks to run something, it appears here with everything you need to decide."
            color: look.c.text_soft
            wrapMode: Text.Wrap
            horizontalAlignment: Text.AlignHCenter
            Layout.fillWidth: true
        }
    }
}
